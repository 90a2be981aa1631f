"""What processes that share no Django agree on: settings readers, keys, reports in Valkey.

The lowest layer: it imports nothing of ours, so that the edge and the hosts can both use it.
"""
