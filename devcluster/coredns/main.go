// CoreDNS with the plugins a test cluster needs: names of Services and Pods, errors, readiness.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	dnsserver.Directives = []string{"ready", "errors", "kubernetes"} // in the order they see a question
	coremain.Run()
}
