"""Who gets into a server, and how: ``hba`` has the rules of the spec, and the file in which a server reads them; ``spec`` and ``tls`` are about TLS."""
