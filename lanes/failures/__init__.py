"""Why model servers fail, in words a person can act on. Pure.

`causes` has the shapes, `common` what any program may write, `reading` puts log, exit status and
the kernel's word together. An engine adds its own `FailureWords` (lanes/engines).
"""
