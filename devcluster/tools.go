//go:build tools

// Package devcluster pins what the test control plane is made of; see README.md.
// The binaries are `tool` lines of go.mod; Gateway API is here for its CRD files.
package devcluster

import _ "sigs.k8s.io/gateway-api/apis/v1"
