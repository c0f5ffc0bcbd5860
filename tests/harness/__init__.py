"""What tests start and watch: simulated hosts and deadlines. Processes and the API: `devcluster`."""
