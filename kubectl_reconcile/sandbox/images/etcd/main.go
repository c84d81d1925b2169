// One program that is etcd and its two command lines, told apart by the name it is called by.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdctl/v3/ctlv3"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
	"go.etcd.io/etcd/server/v3/etcdmain"
)

// parts maps the name of a link to what runs under it.
var parts = map[string]func(){
	"etcd":    func() { etcdmain.Main(os.Args) },
	"etcdctl": ctlv3.MustStart,
	"etcdutl": runUtl,
}

func main() {
	name := filepath.Base(os.Args[0])
	part, known := parts[name]
	if !known {
		fmt.Fprintf(os.Stderr, "%s: no part of etcd has this name; call it by one of its links\n", name)
		os.Exit(2)
	}
	part()
}

// runUtl runs what etcdutl's own main function runs, which is in no package that could be called.
func runUtl() {
	root := &cobra.Command{Use: "etcdutl", Short: "An administrative command line tool for etcd3."}
	root.PersistentFlags().StringVarP(&etcdutl.OutputFormat, "write-out", "w", "simple", "set the output format (fields, json, protobuf, simple, table)")
	root.AddCommand(etcdutl.NewDefragCommand(), etcdutl.NewSnapshotCommand(), etcdutl.NewVersionCommand())
	if err := root.Execute(); err != nil {
		os.Exit(1)
	}
}
