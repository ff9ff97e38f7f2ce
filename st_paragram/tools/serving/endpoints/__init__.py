"""The endpoints: one file for each API."""
