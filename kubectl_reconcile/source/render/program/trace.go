package main

import (
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// A trace follows each field of each object through a build: which steps gave it its value, one after the other. It looks at all
// objects before and after each step, which is slow, so it is only made where somebody asks.

const (
	// own stands for the file that an object comes from.
	own = -1
	// between is what changes objects between the steps: references to names that changed, and hashes in names.
	between   = "NameReferenceTransformer"
	separator = "\x00"
	internal  = "internal.config.kubernetes.io/"
)

type trace struct {
	// root is the folder that is rendered.
	root  string
	steps []note
	// numbers are those of the steps.
	numbers map[note]int
	lives   map[*resource.Resource]*life
	// named are the latest objects by the names that they had first.
	named map[resid.ResId]*life
}

// life is what is known of one object.
type life struct {
	// first is what it is called in its file, entered what it was when the overlay's own steps began.
	first, entered *resid.ResId
	fields         map[string]field
	// earlier is the object that a generator adds to.
	earlier *life
}

// field is a value, and the steps that set it; the first may be own.
type field struct {
	value string
	by    []int
}

// traced is what is told of one object.
type traced struct {
	First   named         `json:"first"`
	Entered named         `json:"entered"`
	Fields  []tracedField `json:"fields"`
}

type named struct {
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// tracedField is where a field stands: names and indexes, and the same with items by what identifies them in their list.
type tracedField struct {
	At  []any `json:"at"`
	Key []any `json:"key"`
	By  []int `json:"by"`
}

func newTrace(root string) *trace {
	return &trace{
		root: root, numbers: map[note]int{}, lives: map[*resource.Resource]*life{}, named: map[resid.ResId]*life{},
	}
}

func (t *trace) number(n note) int {
	number, known := t.numbers[n]
	if !known {
		number = len(t.steps)
		t.numbers[n] = number
		t.steps = append(t.steps, n)
	}
	return number
}

// generated notes what a generator made.
func (t *trace) generated(m resmap.ResMap, by note) {
	for _, each := range m.Resources() {
		made := t.begin(each, t.number(by))
		made.earlier = t.named[*made.first]
		t.named[*made.first] = made
	}
}

// begin notes an object that is seen for the first time.
func (t *trace) begin(each *resource.Resource, by int) *life {
	id := each.OrgId()
	begun := &life{first: &id, fields: map[string]field{}}
	leaves(each.YNode(), func(key string, value string) { begun.fields[key] = field{value, []int{by}} })
	t.lives[each] = begun
	return begun
}

// before notes what happened since the last step, and which objects come to the overlay's own.
func (t *trace) before(m resmap.ResMap, n note) {
	for _, each := range m.Resources() {
		l, known := t.lives[each]
		if !known {
			l = t.begin(each, own)
			t.named[*l.first] = l
		}
		t.changed(each, l, note{By: between, Folder: t.root, At: -1, Target: -1})
		if l.entered == nil && n.Folder == t.root {
			id := each.CurId()
			l.entered = &id
		}
	}
}

// after notes what a step did.
func (t *trace) after(m resmap.ResMap, n note) {
	for _, each := range m.Resources() {
		if l, known := t.lives[each]; known {
			t.changed(each, l, n)
		}
	}
}

// changed notes which fields of an object are others than they were.
func (t *trace) changed(each *resource.Resource, l *life, by note) {
	seen := 0
	leaves(each.YNode(), func(key string, value string) {
		before, known := l.fields[key]
		switch {
		case known && before.value == value:
		case known:
			l.fields[key] = field{value, append(before.by[:len(before.by):len(before.by)], t.number(by))}
		default:
			l.fields[key] = t.added(l, key, value, by)
		}
		seen++
	})
	if seen < len(l.fields) {
		there := make(map[string]field, seen)
		leaves(each.YNode(), func(key string, _ string) { there[key] = l.fields[key] })
		l.fields = there
	}
}

// added is a new field; what a generator adds to keeps the fields that it had.
func (t *trace) added(l *life, key, value string, by note) field {
	if l.earlier != nil && by.By == between {
		if before, known := l.earlier.fields[key]; known && before.value == value {
			return before
		}
	}
	return field{value, []int{t.number(by)}}
}

// told returns what is known of an object in the end.
func (t *trace) told(each *resource.Resource) traced {
	l, known := t.lives[each]
	if !known {
		l = t.begin(each, own)
	}
	t.changed(each, l, note{By: between, Folder: t.root, At: -1, Target: -1})
	if l.entered == nil {
		id := each.CurId()
		l.entered = &id
	}
	said := traced{First: name(l.first), Entered: name(l.entered)}
	walk(each.YNode(), nil, nil, func(at, key []any, _ *yaml.Node) {
		by := l.fields[text(key)].by
		if l.earlier != nil && len(by) > 0 {
			before, known := l.earlier.fields[text(key)]
			switch {
			case known && before.value == l.fields[text(key)].value:
				by = before.by
			case known && before.by[0] != by[0]:
				by = append(before.by[:len(before.by):len(before.by)], by...)
			}
		}
		said.Fields = append(said.Fields, tracedField{clone(at), clone(key), by})
	})
	return said
}

func name(id *resid.ResId) named {
	return named{id.Group, id.Kind, id.Namespace, id.Name}
}

func clone(path []any) []any { return append([]any{}, path...) }

// --- the fields of an object -----------------------------------------------------------------------------------

// item is what identifies one of a list: a field of it and its value.
type item map[string]string

// leaves calls visit with each value of an object, and with what is empty.
func leaves(node *yaml.Node, visit func(key, value string)) {
	walk(node, nil, nil, func(_, key []any, leaf *yaml.Node) {
		visit(text(key), leaf.ShortTag()+separator+leaf.Value)
	})
}

func text(key []any) string {
	var said strings.Builder
	for _, each := range key {
		switch part := each.(type) {
		case string:
			said.WriteString("f" + part)
		case int:
			said.WriteString("i" + strconv.Itoa(part))
		case item:
			for name, value := range part {
				said.WriteString("k" + name + "=" + value)
			}
		}
		said.WriteString(separator)
	}
	return said.String()
}

func walk(node *yaml.Node, at, key []any, visit func(at, key []any, leaf *yaml.Node)) {
	if node == nil { // a patch has deleted it
		return
	}
	for node.Kind == yaml.DocumentNode || node.Kind == yaml.AliasNode {
		if node.Kind == yaml.AliasNode {
			node = node.Alias
		} else {
			node = node.Content[0]
		}
	}
	switch {
	case len(node.Content) == 0 || node.Kind == yaml.ScalarNode:
		visit(at, key, node)
	case node.Kind == yaml.MappingNode:
		for each := 0; each+1 < len(node.Content); each += 2 {
			name := node.Content[each].Value
			if !isBookkeeping(at, name) {
				walk(node.Content[each+1], append(at, name), append(key, name), visit)
			}
		}
	default:
		by := identity(node)
		for each, below := range node.Content {
			var identified any = each
			if by != "" {
				identified = item{by: valueOf(below, by)}
			}
			walk(below, append(at, each), append(key, identified), visit)
		}
	}
}

// isBookkeeping tells whether a name is that of an annotation by which kustomize keeps its own notes.
func isBookkeeping(at []any, name string) bool {
	return len(at) == 2 && at[1] == "annotations" && (name == originKey || strings.HasPrefix(name, internal))
}

var identities = []string{"name", "mountPath", "devicePath", "containerPort", "port", "ip", "topologyKey", "key", "type"}

// identity returns the field that all items of a list have, each with another value; empty where there is none.
func identity(list *yaml.Node) string {
	for _, name := range identities {
		seen := map[string]bool{}
		for _, each := range list.Content {
			if value := valueOf(each, name); value != "" {
				seen[value] = true
			}
		}
		if len(seen) == len(list.Content) {
			return name
		}
	}
	return ""
}

func valueOf(node *yaml.Node, name string) string {
	for at := 0; node.Kind == yaml.MappingNode && at+1 < len(node.Content); at += 2 {
		if node.Content[at].Value == name && node.Content[at+1].Kind == yaml.ScalarNode {
			return node.Content[at+1].Value
		}
	}
	return ""
}
