"""One verb of `kubectl kvpool` a file: reads flags, asks the cluster, hands a screen over."""
