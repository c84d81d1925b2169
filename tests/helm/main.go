// Command helm is Helm's own program, for tests that hold ours against it.
package main

import (
	"log/slog"
	"os"

	"helm.sh/helm/v4/pkg/cmd"
)

func main() {
	root, err := cmd.NewRootCmd(os.Stdout, os.Args[1:], cmd.SetupLogging)
	if err != nil {
		slog.Error("helm can't be set up", slog.Any("error", err))
		os.Exit(1)
	}
	if err := root.Execute(); err != nil {
		os.Exit(1)
	}
}
