"""The line as a discrete-event simulation (simpy): queues, partitions, failures. It decides nothing that the line decides otherwise."""
