"""Load, evaluation and drills: what users will do to a service, done to it before they do.

A ``Plan`` is a list of phases; a phase is a source of asks and the way they are sent. A ``Crew`` sends them from
several processes and gives back a ``Sample`` for each; figures, gates and pages are made of samples alone.
"""
