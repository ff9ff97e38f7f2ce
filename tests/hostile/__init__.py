"""Hostile input, many tries of it: damaged files, killed runs, servers that lie, machines too small."""
