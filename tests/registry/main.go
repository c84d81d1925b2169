// Command registry is two registries of tests: the CNCF distribution, with what it keeps in memory ("serve FILE"), and one with the referrers API ("referrers ADDRESS").
package main

import (
	"net/http"
	"os"

	"github.com/distribution/distribution/v3/registry"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	_ "github.com/distribution/distribution/v3/registry/auth/token"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
	referrers "github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == "referrers" {
		panic(http.ListenAndServe(os.Args[2], referrers.New(referrers.WithReferrersSupport(true))))
	}
	if registry.RootCmd.Execute() != nil {
		os.Exit(1)
	}
}
