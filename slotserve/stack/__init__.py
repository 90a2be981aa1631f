"""All of SlotServe on one machine under one supervisor: what `bin/up` becomes.

It imports no Django: parts are processes of their own, and setting up is one of them.
"""
