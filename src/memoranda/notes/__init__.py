"""The ground floor: what a note is.

Ids, times, front matter, the note itself, chains, pointers, paths, the journal's form, Markdown and tokens. Everything
here is a pure function of its arguments: no file, no clock, no environment, no network.
"""
