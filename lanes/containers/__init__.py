"""Model servers in containers.

A container is started, watched and removed by an attendant: a small process that stands where the
model server's own process would, under the lane's shim. So lock, record, signals, log and exit
status are those of any server. `order` says what the attendant is told, `docker_engine` speaks to
the Docker Engine, `leftovers` removes what no attendant looks after, and `asking` has
that done while looks go on.
"""
