"""Kafka: brokers that come, go and restart without a partition that is lost or can't be written."""
