// Command library says how long kustomize's own library takes to build one folder of this machine, again and again: no files are read
// and no program is started meanwhile. Prints one number a line, in seconds; the first is of a library that knows no schemas yet.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	root, overlay := os.Args[1], os.Args[2]
	rounds, err := strconv.Atoi(os.Args[3])
	must(err)
	files := filesys.MakeFsInMemory()
	must(filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		must(err)
		inside, err := filepath.Rel(root, path)
		must(err)
		return files.WriteFile("/"+filepath.ToSlash(inside), data)
	}))
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified
	for range rounds {
		began := time.Now()
		built, err := krusty.MakeKustomizer(options).Run(files, "/"+overlay)
		must(err)
		_, err = built.AsYaml()
		must(err)
		fmt.Println(time.Since(began).Seconds())
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
