"""The API of kvplan.dev/v1alpha1: typed objects, the rules that bind them, and the schemas made from them."""
