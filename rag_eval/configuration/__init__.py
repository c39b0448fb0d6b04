"""config.ini, .env, the environment and the command line become one Settings.

Precedence, highest first: command line, environment variable, .env file, config file, default. Every value
keeps its source, and everything that is wrong is reported at once, by place. A secret is never shown: not in
a message, not in a `repr`.
"""
