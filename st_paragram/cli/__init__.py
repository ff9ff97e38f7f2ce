"""The command line: one subcommand per file."""
