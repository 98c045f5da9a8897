"""From observed facts to the solver's input. Pure: no I/O, no clock, no unseeded randomness."""
