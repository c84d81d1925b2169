package main

import (
	"fmt"
	"path"
	"slices"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"sigs.k8s.io/yaml"
)

// isKnownHook tells for what a hook waits that Helm runs; those of tests, which only "helm test" runs, are false.
var isKnownHook = map[string]bool{
	"pre-install": true, "post-install": true, "pre-upgrade": true, "post-upgrade": true, "pre-delete": true, "post-delete": true,
	"pre-rollback": true, "post-rollback": true, "test": false, "test-success": false,
}

// document is one document that a template gives.
type document struct {
	head releaseutil.SimpleHead
	object
}

// objects returns what a chart renders to, in the order in which Helm makes it: definitions, objects by their kind, then hooks; and warnings.
func (l *loading) objects(c *chart.Chart, texts map[string]string, o *chartOrder) ([]object, []string, error) {
	left := o.MostBytes
	within := func(size int) error {
		if left -= size; left < 0 {
			return fmt.Errorf("it renders to more than %d MiB", o.MostBytes>>20)
		}
		return nil
	}
	var found []object
	if !o.SkipCRDs {
		for _, each := range l.definitions(c) {
			if err := within(len(each.YAML)); err != nil {
				return nil, nil, err
			}
			found = append(found, each)
		}
	}
	templates := l.templates(c)
	names := make([]string, 0, len(texts))
	for name := range texts {
		names = append(names, name)
	}
	slices.Sort(names)
	var generic, hooks []document
	var warnings, tests []string
	for _, name := range names {
		if strings.HasSuffix(name, notes) || strings.HasPrefix(path.Base(name), "_") || strings.TrimSpace(texts[name]) == "" {
			continue
		}
		if err := within(len(texts[name])); err != nil {
			return nil, nil, err
		}
		documents, err := documentsOf(name, texts[name], templates[name])
		if err != nil {
			return nil, nil, err
		}
		for _, each := range documents {
			switch isHook, unknown := hookOf(each.head); {
			case unknown != "":
				warnings = append(warnings, fmt.Sprintf(
					"%s: %s is a hook of %s, which Helm doesn't know and leaves out", name, called(each.head), unknown,
				))
			case isHook && isTest(each.head):
				tests = append(tests, fmt.Sprintf("%s: %s", name, called(each.head)))
			case isHook:
				hooks = append(hooks, each)
			default:
				generic = append(generic, each)
			}
		}
	}
	if len(tests) == 1 {
		warnings = append(warnings, tests[0]+" is a test, and is left out: helm test runs it")
	} else if len(tests) > 1 {
		warnings = append(warnings, fmt.Sprintf("%s is a test, and is left out with %d more: helm test runs them", tests[0], len(tests)-1))
	}
	for _, each := range slices.Concat(byKind(generic), byKind(hooks)) {
		found = append(found, each.object)
	}
	return found, warnings, nil
}

// definitions are the files in crds/ of a chart and those in it, which aren't templates.
func (l *loading) definitions(c *chart.Chart) []object {
	var found []object
	files := c.CRDObjects()
	slices.SortStableFunc(files, func(a, b chart.CRD) int { return strings.Compare(a.Filename, b.Filename) })
	for _, each := range files {
		where, _ := l.where(each.File)
		found = append(found, object{YAML: string(each.File.Data), File: where})
	}
	return found
}

func documentsOf(name, text, where string) ([]document, error) {
	split := releaseutil.SplitManifests(text)
	keys := make([]string, 0, len(split))
	for key := range split {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	found := make([]document, 0, len(keys))
	for _, key := range keys {
		var head releaseutil.SimpleHead
		if err := yaml.Unmarshal([]byte(split[key]), &head); err != nil {
			return nil, fmt.Errorf("YAML parse error on %s: %w", name, err)
		}
		// Helm trims documents and prints each with a line end, which a text in its last line keeps.
		found = append(found, document{head, object{YAML: split[key] + "\n", File: where}})
	}
	return found, nil
}

// hookOf tells whether an object is a hook, and for what it waits that isn't known.
func hookOf(head releaseutil.SimpleHead) (isHook bool, unknown string) {
	events, isHook := eventsOf(head)
	for _, event := range events {
		if _, known := isKnownHook[event]; !known {
			return true, event
		}
	}
	return isHook, ""
}

func isTest(head releaseutil.SimpleHead) bool {
	events, _ := eventsOf(head)
	return !slices.ContainsFunc(events, func(event string) bool { return isKnownHook[event] })
}

func eventsOf(head releaseutil.SimpleHead) ([]string, bool) {
	if head.Metadata == nil {
		return nil, false
	}
	text, isHook := head.Metadata.Annotations[release.HookAnnotation]
	if !isHook {
		return nil, false
	}
	var events []string
	for event := range strings.SplitSeq(text, ",") {
		events = append(events, strings.ToLower(strings.TrimSpace(event)))
	}
	return events, true
}

func called(head releaseutil.SimpleHead) string {
	if head.Metadata == nil {
		return head.Kind
	}
	return head.Kind + " " + head.Metadata.Name
}

// byKind returns documents in the order of Helm's installations: kinds that it knows, then others by their names.
func byKind(documents []document) []document {
	order := map[string]int{}
	for index, kind := range releaseutil.InstallOrder {
		order[kind] = index
	}
	slices.SortStableFunc(documents, func(a, b document) int {
		first, isKnown := order[a.head.Kind]
		second, isAlsoKnown := order[b.head.Kind]
		switch {
		case isKnown && isAlsoKnown:
			return first - second
		case isKnown:
			return -1
		case isAlsoKnown:
			return 1
		}
		return strings.Compare(a.head.Kind, b.head.Kind)
	})
	return documents
}
