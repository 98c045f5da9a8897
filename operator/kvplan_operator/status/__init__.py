"""What people see: status documents rendered from plain facts, and the rule that nothing is written at rest."""
