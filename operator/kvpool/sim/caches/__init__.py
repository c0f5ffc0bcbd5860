"""Hit rates of prefix caches over a whole workload, by capacity and eviction rule."""
