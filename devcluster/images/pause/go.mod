module kvpool.dev/pause

go 1.26.0
