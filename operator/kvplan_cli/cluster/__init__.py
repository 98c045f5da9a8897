"""``kvplan`` against a cluster: how it is reached, what is read there, and the few writes that people ask for."""
