"""The `kvplan` command: the only part that reads files, writes files and prints."""
