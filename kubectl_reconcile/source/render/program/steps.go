package main

import (
	"errors"
	"regexp"
	_ "unsafe" // for the names of kustomize's that it doesn't export

	"sigs.k8s.io/kustomize/api/filters/fsslice"
	"sigs.k8s.io/kustomize/api/filters/imagetag"
	"sigs.k8s.io/kustomize/api/filters/replacement"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// A step is one of kustomize's transformers or generators at work, configured by one entry of a kustomization. kustomize makes
// each by a factory; ours stand before them and note what a step matched, and which one failed. That is seen where kustomize
// itself looks, so it costs nothing where something is matched.

type pluginKind int

//go:linkname kindsByName sigs.k8s.io/kustomize/api/internal/plugins/builtinhelpers.stringToBuiltinPluginTypeMap
var kindsByName map[string]pluginKind

//go:linkname transformers sigs.k8s.io/kustomize/api/internal/plugins/builtinhelpers.TransformerFactories
var transformers map[pluginKind]func() resmap.TransformerPlugin

//go:linkname generators sigs.k8s.io/kustomize/api/internal/plugins/builtinhelpers.GeneratorFactories
var generators map[pluginKind]func() resmap.GeneratorPlugin

// watched is the build that is going on; there is one at a time.
var watched *watch

// watch is what is noted of one build.
type watch struct {
	// matched tells of each entry that may match nothing whether it ever matched something.
	matched map[note]bool
	// order are its keys as they were first seen.
	order  []note
	failed *note
	// marker knows which file objects come from.
	marker *marker
	// trace follows all fields, where that is asked for.
	trace *trace
	// over is what is made of an overlay, or of other objects; nil where an overlay is built as it is.
	over *over
}

// note is an entry of a kustomization: the kind of its step, the folder it is in, and how kustomize writes it as YAML.
// Replacements are one step all together: At is the number of the one and Target that of its target, -1 where it is about none.
type note struct {
	By     string `json:"by"`
	Folder string `json:"folder"`
	Entry  string `json:"entry"`
	At     int    `json:"at"`
	Target int    `json:"target"`
}

func newNote(by string) note {
	return note{By: by, At: -1, Target: -1}
}

func newWatch() *watch {
	return &watch{matched: map[note]bool{}}
}

func (w *watch) saw(n note, matched bool) {
	before, known := w.matched[n]
	if !known {
		w.order = append(w.order, n)
	}
	w.matched[n] = before || matched
}

// unmatched returns the entries that never matched anything, however often they were built.
func (w *watch) unmatched() []note {
	var found []note
	for _, n := range w.order {
		if !w.matched[n] && len(found) < mostNotices {
			found = append(found, n)
		}
	}
	return found
}

// standBefore has all steps made by us. It returns false where this kustomize isn't the one that it was written for.
func standBefore() bool {
	if kindsByName["PatchTransformer"] == 0 || len(transformers) == 0 || len(generators) == 0 {
		return false
	}
	for name, kind := range kindsByName {
		if theirs, there := transformers[kind]; there {
			transformers[kind] = func() resmap.TransformerPlugin { return &transformer{newNote(name), theirs()} }
		}
		if theirs, there := generators[kind]; there {
			generators[kind] = func() resmap.GeneratorPlugin { return &generator{newNote(name), theirs()} }
		}
	}
	return true
}

// transformer is one of kustomize's, with somebody who looks on.
type transformer struct {
	note
	theirs resmap.TransformerPlugin
}

// Config reads the entry that the step is for.
func (t *transformer) Config(h *resmap.PluginHelpers, entry []byte) error {
	t.Folder, t.Entry = inside(h.Loader().Root()), string(entry)
	return t.checked(t.theirs.Config(h, entry))
}

// Transform does what the step does.
func (t *transformer) Transform(m resmap.ResMap) error {
	watched.marker.lift(m.Resources())
	if watched.trace != nil {
		watched.trace.before(m, t.note)
		defer watched.trace.after(m, t.note)
	}
	return t.checked(t.theirs.Transform(onlooker{m, t.note}))
}

// generator is one of kustomize's, with somebody who looks on.
type generator struct {
	note
	theirs resmap.GeneratorPlugin
}

// Config reads the entry that the step is for.
func (g *generator) Config(h *resmap.PluginHelpers, entry []byte) error {
	g.Folder, g.Entry = inside(h.Loader().Root()), string(entry)
	return g.checked(g.theirs.Config(h, entry))
}

// Generate does what the step does.
func (g *generator) Generate() (resmap.ResMap, error) {
	made, err := g.theirs.Generate()
	if err == nil && watched.trace != nil {
		watched.trace.generated(made, g.note)
	}
	return made, g.checked(err)
}

// checked notes the first entry whose step failed.
func (n note) checked(err error) error {
	if err != nil && watched.failed == nil {
		watched.failed = &n
	}
	return err
}

// onlooker is what a transformer gets instead of the objects, to see which of them it asks for.
type onlooker struct {
	resmap.ResMap
	of note
}

// Select returns the objects that a patch is for.
func (o onlooker) Select(target types.Selector) ([]*resource.Resource, error) {
	found, err := o.ResMap.Select(target)
	if err == nil {
		watched.saw(o.of, len(found) > 0)
	}
	return found, err
}

// ApplyFilter changes all objects by a filter, and looks first which ones it is for.
func (o onlooker) ApplyFilter(filter kio.Filter) error {
	switch wanted := filter.(type) {
	case imagetag.LegacyFilter:
		watched.saw(o.of, o.hasContainer(matching(wanted.ImageTag.Name)))
	case imagetag.Filter:
		watched.saw(o.of, watched.matched[o.of] || o.hasImage(matching(wanted.ImageTag.Name), wanted.FsSlice))
	case replacement.Filter:
		for at, each := range wanted.Replacements {
			for target, selected := range each.Targets {
				n := o.of
				n.At, n.Target = at, target
				watched.saw(n, watched.matched[n] || o.isTargeted(selected))
			}
		}
		filter = oneByOne{o.of, wanted.Replacements}
	}
	return o.ResMap.ApplyFilter(filter)
}

// oneByOne makes replacements as kustomize does, and notes which one failed.
type oneByOne struct {
	of           note
	replacements []types.Replacement
}

func (o oneByOne) Filter(nodes []*yaml.RNode) ([]*yaml.RNode, error) {
	var err error
	for at := range o.replacements {
		n := o.of
		n.At = at
		nodes, err = replacement.Filter{Replacements: o.replacements[at : at+1]}.Filter(nodes)
		if n.checked(err) != nil {
			return nil, err
		}
	}
	return nodes, nil
}

// isTargeted tells whether a replacement is for any object.
func (o onlooker) isTargeted(target *types.TargetSelector) bool {
	if target == nil || target.Select == nil {
		return true // which kustomize refuses
	}
	wanted, err := types.NewTargetSelectorRegex(target)
	if err != nil {
		return true
	}
	for _, each := range o.Resources() {
		ids := append(each.PrevIds(), each.CurId())
		for _, id := range ids {
			if wanted.Selects(id) && !wanted.RejectsAny(ids) && isSelected(each, target) {
				return true
			}
		}
	}
	return false
}

// isSelected tells whether the labels and annotations of an object are those of a target.
func isSelected(each *resource.Resource, target *types.TargetSelector) bool {
	if !bears(each, target.Select) {
		return false
	}
	for _, rejected := range target.Reject {
		if (rejected.LabelSelector != "" || rejected.AnnotationSelector != "") && bears(each, rejected) {
			return false
		}
	}
	return true
}

func bears(each *resource.Resource, wanted *types.Selector) bool {
	labels, err := each.MatchesLabelSelector(wanted.LabelSelector)
	if err != nil || !labels {
		return false
	}
	annotations, err := each.MatchesAnnotationSelector(wanted.AnnotationSelector)
	return err == nil && annotations
}

// matching returns what tells whether an image is the one of a name, whatever its tag and digest. It is kustomize's rule.
func matching(name string) func(image string) bool {
	const tag, digest = "(:[a-zA-Z0-9_.{}-]*)?", "(@[a-zA-Z0-9]+([.+_-][a-zA-Z0-9]+)*:[a-zA-Z0-9_.{}-]*)?"
	pattern, err := regexp.Compile("^" + name + tag + digest + "$")
	if err != nil {
		return func(string) bool { return false }
	}
	return pattern.MatchString
}

// hasContainer tells whether any container of any object has an image that is wanted.
func (o onlooker) hasContainer(wanted func(image string) bool) bool {
	for _, each := range o.Resources() {
		if each.GetKind() != "CustomResourceDefinition" && hasContainer(each.YNode(), wanted) {
			return true
		}
	}
	return false
}

func hasContainer(node *yaml.Node, wanted func(image string) bool) bool {
	switch node.Kind {
	case yaml.SequenceNode:
		for _, item := range node.Content {
			if hasContainer(item, wanted) {
				return true
			}
		}
	case yaml.MappingNode:
		for at := 0; at+1 < len(node.Content); at += 2 {
			name, value := node.Content[at].Value, node.Content[at+1]
			if hasContainer(value, wanted) || (name == "containers" || name == "initContainers") && areWanted(value, wanted) {
				return true
			}
		}
	}
	return false
}

func areWanted(containers *yaml.Node, wanted func(image string) bool) bool {
	if containers.Kind != yaml.SequenceNode {
		return false
	}
	for _, container := range containers.Content {
		for at := 0; container.Kind == yaml.MappingNode && at+1 < len(container.Content); at += 2 {
			if container.Content[at].Value == "image" && wanted(container.Content[at+1].Value) {
				return true
			}
		}
	}
	return false
}

var errFound = errors.New("found")

// hasImage tells whether a field that holds an image by configuration has one that is wanted.
func (o onlooker) hasImage(wanted func(image string) bool, fields types.FsSlice) bool {
	look := fsslice.Filter{FsSlice: fields, SetValue: func(node *yaml.RNode) error {
		if wanted(node.YNode().Value) {
			return errFound
		}
		return nil
	}}
	for _, each := range o.Resources() {
		if _, err := look.Filter(&each.RNode); errors.Is(err, errFound) {
			return true
		}
	}
	return false
}
