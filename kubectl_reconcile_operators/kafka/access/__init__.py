"""Who gets to the brokers, and how: ``listeners`` are ports for clients, ``users`` those who log in, ``certified`` is about certificates, ``driver`` does the I/O.

Brokers, controllers and the daemon talk at ports of their own, over TLS with certificates that the Kafka issues itself, and nobody gets in there without one. That is so from the beginning and never
changes. So what a spec says of listeners is about clients alone, and can change one broker at a time.
"""
