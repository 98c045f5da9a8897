"""One module per `kvplan` command."""
