"""The default method: a proven lower bound, a polished feasible plan, the gap between (02-solver §3)."""
