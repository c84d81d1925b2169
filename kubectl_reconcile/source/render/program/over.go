package main

import (
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// What is built over something has its kustomization in a folder beside the source, which is a folder itself then: kustomize lets nobody
// have a base that is above them, and what is followed may be the root of the source.

const (
	// overFolder is where that kustomization is; the caller knows it by this name.
	overFolder = "spec.source.kustomize"
	// mountedAt is where the source is meanwhile.
	mountedAt = "reconcile-source"
)

// beside returns what is at a path outside the source, and whether that path is; nothing is where nothing is built over anything.
func (o *over) beside(name string) (found, bool) {
	if o == nil {
		return found{}, false
	}
	at := strings.TrimPrefix(path.Clean("/"+filepath.ToSlash(name)), "/")
	if at == mountedAt || strings.HasPrefix(at, mountedAt+"/") {
		return found{}, false
	}
	file, isOurs := strings.CutPrefix(at, overFolder+"/")
	switch {
	case at == overFolder:
		return found{Kind: "folder"}, true
	case isOurs && file == fileNames[0]:
		return found{Kind: "file", Data: []byte(o.Kustomization)}, true
	case isOurs:
		if each := o.resource(file); each != nil {
			return found{Kind: "file", Data: []byte(each.YAML)}, true
		}
	}
	return found{Kind: "absent"}, true
}

// resource returns the object that is a file of the folder; nil where none is.
func (o *over) resource(file string) *object {
	number, err := strconv.Atoi(strings.TrimSuffix(file, ".yaml"))
	if err != nil || number < 0 || number >= len(o.Resources) || file != fmt.Sprintf("%d.yaml", number) {
		return nil
	}
	return &o.Resources[number]
}

// origin returns the file of the source that an object at a path comes from.
func (o *over) origin(at string) string {
	if o != nil {
		if each := o.resource(strings.TrimPrefix(at, "/"+overFolder+"/")); each != nil {
			return each.File
		}
	}
	return inside(at)
}
