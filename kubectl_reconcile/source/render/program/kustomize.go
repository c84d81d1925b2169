package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"os"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

const (
	mostNotices   = 100
	mostSaidBytes = 64 << 10
	originKey     = "config.kubernetes.io/origin"
	buildMetadata = "buildMetadata"
)

var fileNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// kustomize renders an overlay as "kubectl kustomize" does, in the same order. It never panics.
func kustomize(p *pipe, o *overlay) (result *done) {
	said := listen()
	builtIn := openapi.GetSchemaVersion()
	watched = newWatch()
	if o.Origins {
		watched.trace = newTrace(inside(o.Path))
	}
	defer func() {
		if recovered := recover(); recovered != nil {
			openapi.ResetOpenAPI()
			result = &done{Error: fmt.Sprintf("kustomize can't go on: %v", recovered)}
		} else if openapi.GetSchemaVersion() != builtIn {
			openapi.ResetOpenAPI() // what one overlay says of kinds mustn't count for the next
		}
		result.Notices, result.Unmatched, result.Failed = said(), watched.unmatched(), watched.failed
	}()
	marked := &marker{root: inside(o.Path)}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified // kubectl's, which isn't the library's default
	rendered, err := krusty.MakeKustomizer(options).Run(&source{p, marked.mark}, "/"+inside(o.Path))
	if err != nil {
		return &done{Error: err.Error()}
	}
	objects := make([]object, 0, rendered.Size())
	left := o.MostBytes
	for _, each := range rendered.Resources() {
		file := marked.file(each)
		if marked.isOurs {
			if err := without(each, originKey); err != nil {
				return &done{Error: err.Error()}
			}
		}
		text, err := each.AsYAML()
		if err != nil {
			return &done{Error: err.Error()}
		}
		if left -= len(text); left < 0 {
			return &done{Error: fmt.Sprintf("it renders to more than %d MiB", o.MostBytes>>20)}
		}
		made := object{YAML: string(text), File: file}
		if watched.trace != nil {
			told := watched.trace.told(each)
			made.Trace = &told
		}
		objects = append(objects, made)
	}
	result = &done{Objects: objects}
	if watched.trace != nil {
		result.Steps = watched.trace.steps
	}
	return result
}

// without takes an annotation away, and with the last one their map.
func without(each *resource.Resource, annotation string) error {
	annotations := each.GetAnnotations()
	delete(annotations, annotation)
	return each.SetAnnotations(annotations)
}

// marker has kustomize note in each object which file it comes from.
type marker struct {
	// root is the folder that is rendered.
	root string
	// isOurs tells that the notes are ours, and are to be taken away.
	isOurs bool
}

// mark returns the overlay's own kustomization file with the order to note origins, and all others as they are.
//
// The order is a line at the end, or the last field of a map in braces, where the file has none of its own; else origins aren't
// known.
func (m *marker) mark(at string, data []byte) []byte {
	if inside(path.Dir(at)) != m.root || !slices.Contains(fileNames, path.Base(at)) {
		return data
	}
	var fields map[string]any
	if yaml.Unmarshal(data, &fields) != nil || saysNothing(fields) {
		return data
	}
	for name := range fields {
		if strings.EqualFold(name, buildMetadata) {
			return data
		}
	}
	order := buildMetadata + ": [" + types.OriginAnnotations + "]"
	ways := [][]byte{append(slices.Clone(data), "\n"+order+"\n"...)}
	if inner, inBraces := bytes.CutSuffix(bytes.TrimSpace(data), []byte("}")); inBraces {
		ways = append(ways, append(bytes.TrimRight(slices.Clone(inner), ", \t\r\n"), ", "+order+"}\n"...))
	}
	for _, marked := range ways {
		var both map[string]any
		if yaml.Unmarshal(marked, &both) == nil && len(both) == len(fields)+1 {
			m.isOurs = true
			return marked
		}
	}
	return data
}

// saysNothing tells whether a kustomization has no field that counts, which kustomize refuses.
func saysNothing(fields map[string]any) bool {
	for name := range fields {
		if name != "kind" && name != "apiVersion" {
			return false
		}
	}
	return true
}

// file returns the file from the root of the source that an object comes from; that of the overlay where it isn't known.
func (m *marker) file(each *resource.Resource) string {
	origin, err := each.GetOrigin()
	if err == nil && origin != nil && origin.Repo == "" {
		for _, file := range []string{origin.Path, origin.ConfiguredIn} {
			if file != "" {
				return inside(path.Join("/", m.root, file))
			}
		}
	}
	return ""
}

// listen has what kustomize says of deprecated fields come to us; the function it returns ends that, and says what it was.
func listen() func() []string {
	reader, writer, err := os.Pipe()
	if err != nil {
		return func() []string { return nil }
	}
	earlier := os.Stderr
	os.Stderr = writer
	log.SetOutput(writer)
	heard := make(chan []byte, 1)
	go func() {
		said, _ := io.ReadAll(io.LimitReader(reader, mostSaidBytes))
		_, _ = io.Copy(io.Discard, reader)
		heard <- said
	}()
	return func() []string {
		os.Stderr = earlier
		log.SetOutput(earlier)
		writer.Close()
		said := <-heard
		reader.Close()
		lines := strings.Split(strings.TrimSpace(string(said)), "\n")
		lines = slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" })
		slices.Sort(lines)
		lines = slices.Compact(lines)
		return lines[:min(len(lines), mostNotices)]
	}
}
