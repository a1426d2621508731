"""Starts Retort and its peers on loopback, talks to them on the wire, and stops them again."""
