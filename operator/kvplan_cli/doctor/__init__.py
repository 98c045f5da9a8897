"""``kvplan doctor``: what is wrong with an installation and its fleets, with a remedy for each thing."""
