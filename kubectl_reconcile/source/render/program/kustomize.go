package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"os"
	"path"
	"regexp"
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
	// transformationsKey is for the notes of steps, which kustomize takes away in the end.
	transformationsKey = "alpha.config.kubernetes.io/transformations"
	buildMetadata      = "buildMetadata"
)

var fileNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// usualSchema is the version of the schemas that count where an overlay names none.
var usualSchema = openapi.GetSchemaVersion()

// isFresh tells that nothing of kinds is left of what was rendered before.
var isFresh = true

// kustomize renders an overlay as "kubectl kustomize" does, in the same order. It never panics.
//
// The library keeps what it knows of kinds for the whole process. For the usual schemas that is welcome: to read them takes long. An overlay
// that brings its own must find nothing there, as in a process of its own, nor leave anything: it is rendered once more after all was forgotten.
func kustomize(p *pipe, o *overlay) *done {
	defer func() { watched.over = nil }() // what is rendered next stands where it is
	wasFresh := isFresh
	isFresh = false
	// Clears the version that an overlay has named, which would keep those after it from naming one.
	watched = newWatch()
	if err := openapi.SetSchema(nil, nil, true); err != nil {
		return &done{Error: err.Error()}
	}
	result := rendered(p, o)
	if openapi.GetSchemaVersion() == usualSchema {
		return result
	}
	forget()
	if !wasFresh {
		result = rendered(p, o)
		forget()
	}
	return result
}

// forget takes away all that the library knows of kinds.
func forget() {
	openapi.ResetOpenAPI()
	isFresh = true
}

// rendered returns what an overlay renders to by what the library knows of kinds.
func rendered(p *pipe, o *overlay) (result *done) {
	said := listen()
	watched = newWatch()
	watched.over = o.Over
	root := inside(o.Path)
	if o.Over != nil {
		root = overFolder
	}
	if o.Origins {
		watched.trace = newTrace(root)
	}
	defer func() {
		if recovered := recover(); recovered != nil {
			result = &done{Error: fmt.Sprintf("kustomize can't go on: %v", recovered)}
			if openapi.GetSchemaVersion() == usualSchema {
				forget() // it may have stopped while it read them
			}
		}
		result.Notices, result.Unmatched, result.Failed = said(), watched.unmatched(), watched.failed
	}()
	marked := &marker{root: root, lifted: map[*resource.Resource]string{}}
	watched.marker = marked
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified // kubectl's, which isn't the library's default
	made, err := krusty.MakeKustomizer(options).Run(newSource(p, marked.mark), "/"+root)
	if err != nil {
		return &done{Error: err.Error()}
	}
	objects := make([]object, 0, made.Size())
	left := o.MostBytes
	for _, each := range made.Resources() {
		file := marked.file(each)
		if marked.isOurs {
			takeOut(each.YNode(), originKey)
		}
		text, err := each.AsYAML()
		if err != nil {
			return &done{Error: err.Error()}
		}
		if left -= len(text); left < 0 {
			return &done{Error: fmt.Sprintf("it renders to more than %d MiB", o.MostBytes>>20)}
		}
		one := object{YAML: string(text), File: file}
		if watched.trace != nil {
			told := watched.trace.told(each)
			one.Trace = &told
		}
		objects = append(objects, one)
	}
	result = &done{Objects: objects}
	if watched.trace != nil {
		result.Steps = watched.trace.steps
	}
	return result
}

// marker has kustomize note in each object which file it comes from.
type marker struct {
	// root is the folder that is rendered.
	root string
	// isOurs tells that the notes are ours, and are to be taken away.
	isOurs bool
	// lifted are the notes that were taken off objects already.
	lifted map[*resource.Resource]string
}

// lift takes kustomize's notes off objects before a step, and remembers where they came from.
//
// kustomize adds to the notes after each step, and reads and writes those of all steps before for that: a fifth of its time. And a step
// sees the objects as they are without notes.
func (m *marker) lift(objects []*resource.Resource) {
	if !m.isOurs {
		return
	}
	for _, each := range objects {
		takeOut(each.YNode(), transformationsKey)
		// A step that meets an object without a note takes it for its own.
		if origin := takeOut(each.YNode(), originKey); origin != "" && !byStep.MatchString(origin) {
			m.lifted[each] = origin
		}
	}
}

// byStep matches the note of an object that a step, and no generator, is taken to have made.
var byStep = regexp.MustCompile(`(?m)^  kind: \w+Transformer$`)

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
	var origin resource.Origin
	note, lifted := m.lifted[each]
	if !lifted {
		note = each.GetAnnotations()[originKey]
	}
	if err := yaml.Unmarshal([]byte(note), &origin); err == nil && origin.Repo == "" {
		for _, file := range []string{origin.Path, origin.ConfiguredIn} {
			if file != "" {
				return watched.over.origin(path.Join("/", m.root, file))
			}
		}
	}
	return ""
}

// takeOut takes an annotation away, and with the last one their map; it returns what it was.
func takeOut(object *yaml.Node, annotation string) string {
	metadata := valueAt(object, "metadata")
	annotations := valueAt(metadata, "annotations")
	for at := 0; annotations != nil && at+1 < len(annotations.Content); at += 2 {
		if annotations.Content[at].Value != annotation {
			continue
		}
		value := annotations.Content[at+1].Value
		annotations.Content = slices.Delete(annotations.Content, at, at+2)
		if len(annotations.Content) == 0 {
			at = slices.Index(metadata.Content, annotations)
			metadata.Content = slices.Delete(metadata.Content, at-1, at+1)
		}
		return value
	}
	return ""
}

// valueAt returns the field of a map; nil where there is none, or no map.
func valueAt(node *yaml.Node, name string) *yaml.Node {
	for at := 0; node != nil && node.Kind == yaml.MappingNode && at+1 < len(node.Content); at += 2 {
		if node.Content[at].Value == name {
			return node.Content[at+1]
		}
	}
	return nil
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
	log.SetFlags(0) // a time would make it another warning at each rendering
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
