// CoreDNS with the plugins a test cluster needs: names of Services and Pods, "no such name", errors, readiness.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() {
	// In the order they see a question.
	dnsserver.Directives = []string{"bind", "ready", "errors", "template", "kubernetes"}
	coremain.Run()
}
