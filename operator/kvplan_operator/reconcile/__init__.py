"""The shell: one task per fleet, one tick with numbered steps, one leader."""
