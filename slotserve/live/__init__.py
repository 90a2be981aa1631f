"""What open pages are told, so that they ask for what has changed and for nothing else.

`state` is what can be told, `reading` finds it out, `hub` passes it on to everybody who listens.
"""
