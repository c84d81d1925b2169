package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	"unsafe"

	"helm.sh/helm/v4/pkg/chart/common"
	valueutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/ignore"
)

const (
	// mostUnpacked is how much the archives of a chart may hold together, in bytes.
	mostUnpacked = 64 << 20
	// deepest is how many folders may be within one another in a chart.
	deepest = 64
	// unpackedMark ends the name under which an archive's files are loaded, as if somebody had unpacked it into a folder.
	unpackedMark = "!"
	chartFile    = "Chart.yaml"
	notes        = "NOTES.txt"
)

var byteOrderMark = []byte{0xEF, 0xBB, 0xBF}

// helm renders a chart as "helm template" does. It never panics.
func helm(p *pipe, o *chartOrder) (result *done) {
	said := listen()
	log.SetFlags(0)
	l := &loading{pipe: p, root: inside(o.Path), places: map[*byte]string{}, left: mostUnpacked, ignored: ignore.Empty()}
	seen := &values{asked: func() []string { return nil }}
	defer func() {
		if recovered := recover(); recovered != nil {
			result = &done{Error: fmt.Sprintf("Helm can't go on: %v", recovered)}
		}
		result.Notices, result.Lookups = append(result.Notices, said()...), seen.asked()
		if result.Error != "" || len(result.Notices) > 0 {
			result.Templates, result.Values = seen.templates, seen.all
		}
	}()
	result, err := l.rendered(o, seen)
	if err != nil {
		return &done{Error: err.Error(), At: place(err)}
	}
	return result
}

// values is what is known of a chart when something is said of it: values that a message must not have, what templates are called,
// and what was looked up.
type values struct {
	all       []any
	templates map[string]string
	asked     func() []string
}

// placed is an error that is about one file.
type placed struct {
	file string
	err  error
}

func (e *placed) Error() string { return e.err.Error() }
func (e *placed) Unwrap() error { return e.err }

func at(file, format string, rest ...any) error { return &placed{file, fmt.Errorf(format, rest...)} }

func place(err error) string {
	if found := (*placed)(nil); errors.As(err, &found) {
		return found.file
	}
	return ""
}

// rendered returns the objects of the chart, or what is wrong with it.
func (l *loading) rendered(o *chartOrder, seen *values) (*done, error) {
	given, err := l.given(o, seen)
	if err != nil {
		return nil, err
	}
	files, err := l.files()
	if err != nil {
		return nil, err
	}
	draw := func(funcs *functions) ([]object, []string, error) { return l.drawn(o, files, given, funcs, seen) }
	first := newFunctions(o.Lookups, nil)
	seen.asked = first.asked
	objects, warnings, err := draw(first)
	if err != nil {
		return nil, err
	}
	found := &done{Objects: objects, Notices: warnings, Drawn: first.counts}
	if len(first.counts) == 0 {
		return found, nil
	}
	// What is drawn by chance or from the clock differs where everything drawn is another one.
	if found.Again, _, err = draw(newFunctions(o.Lookups, first)); err != nil {
		return nil, fmt.Errorf("rendered a second time, where what is random is another: %w", err)
	}
	return found, nil
}

// given returns the values that the order has: those of its files in their order, and then its own.
func (l *loading) given(o *chartOrder, seen *values) (map[string]any, error) {
	given := map[string]any{}
	for _, file := range o.ValuesFiles {
		name := inside(file.Path)
		got := l.pipe.ask(word{Read: &name})
		if got.Kind == "absent" {
			if file.IgnoreMissing {
				continue
			}
			return nil, at(name, "the values file isn't there")
		}
		if err := wrong(name, got); err != nil {
			return nil, at(name, "the values file can't be read: %w", err)
		}
		if got.Kind != "file" {
			return nil, at(name, "the values file can't be read: it is a folder")
		}
		read, err := loader.LoadValues(bytes.NewReader(got.Data))
		if err != nil {
			return nil, at(name, "the values file can't be read: %w", err)
		}
		seen.all = append(seen.all, read)
		given = loader.MergeMaps(given, read)
	}
	own, err := loader.LoadValues(strings.NewReader(o.Values))
	if err != nil {
		return nil, fmt.Errorf("the values can't be read: %w", err)
	}
	seen.all = append(seen.all, own)
	return loader.MergeMaps(given, own), nil
}

// drawn renders the chart once.
func (l *loading) drawn(
	o *chartOrder, files []*archive.BufferedFile, given map[string]any, funcs *functions, seen *values,
) ([]object, []string, error) {
	loaded, err := loader.LoadFiles(copies(files))
	if err != nil {
		return nil, nil, at(path.Join(l.root, chartFile), "%w", err)
	}
	seen.all = append(seen.all, valuesOf(loaded)...)
	seen.templates = l.templates(loaded)
	abilities, err := abilitiesOf(o)
	if err != nil {
		return nil, nil, err
	}
	warnings, err := l.check(loaded, abilities)
	if err != nil {
		return nil, nil, err
	}
	if err := chartutil.ProcessDependencies(loaded, given); err != nil {
		return nil, nil, err
	}
	if err := l.checkEnabled(loaded); err != nil {
		return nil, nil, err
	}
	seen.templates = l.templates(loaded) // those of subcharts with an alias are called by it
	release := common.ReleaseOptions{Name: o.Release, Namespace: o.Namespace, Revision: 1, IsInstall: true}
	top, err := valueutil.ToRenderValuesWithSchemaValidation(loaded, given, release, abilities, true)
	if err != nil {
		return nil, nil, err
	}
	if all, err := top.Table("Values"); err == nil {
		seen.all = append(seen.all, all.AsMap())
		if err := l.checkSchemas(loaded, all.AsMap()); err != nil {
			return nil, nil, err
		}
	}
	texts, err := engine.Engine{CustomTemplateFuncs: funcs.all()}.Render(loaded, top)
	if err != nil {
		return nil, nil, err
	}
	objects, told, err := l.objects(loaded, texts, o)
	return objects, append(warnings, told...), err
}

// copies returns files that may be renamed, as the loader does it.
func copies(files []*archive.BufferedFile) []*archive.BufferedFile {
	copied := make([]*archive.BufferedFile, len(files))
	for i, file := range files {
		own := *file
		copied[i] = &own
	}
	return copied
}

// valuesOf returns the default values of a chart and of all that are in it.
func valuesOf(c *chart.Chart) []any {
	found := []any{}
	if c.Values != nil {
		found = append(found, c.Values)
	}
	for _, each := range c.Dependencies() {
		found = append(found, valuesOf(each)...)
	}
	return found
}

func abilitiesOf(o *chartOrder) (*common.Capabilities, error) {
	abilities := common.DefaultCapabilities.Copy()
	if o.KubeVersion != "" {
		version, err := common.ParseKubeVersion(o.KubeVersion)
		if err != nil {
			return nil, fmt.Errorf("kubeVersion %q is no version: %w", o.KubeVersion, err)
		}
		abilities.KubeVersion = *version
	}
	if o.APIVersions != nil {
		abilities.APIVersions = o.APIVersions
	}
	return abilities, nil
}

// --- the files ---

// loading reads the files of a chart, and remembers where each of them is.
type loading struct {
	pipe *pipe
	// root is the folder of the chart.
	root string
	// places are the files of the source by the first byte of what they hold; of what an archive holds it is the archive.
	places map[*byte]string
	// left is how much may still come out of archives.
	left    int64
	ignored *ignore.Rules
}

// files returns all files of the chart that .helmignore lets pass, archives unpacked.
func (l *loading) files() ([]*archive.BufferedFile, error) {
	ignoreFile := path.Join(l.root, ignore.HelmIgnore)
	switch got := l.pipe.ask(word{Read: &ignoreFile}); got.Kind {
	case "file":
		rules, err := ignore.Parse(bytes.NewReader(got.Data))
		if err != nil {
			return nil, at(ignoreFile, "it can't be understood: %w", err)
		}
		l.ignored = rules
	case "absent":
	default:
		if err := wrong(ignoreFile, got); err != nil {
			return nil, at(ignoreFile, "%w", err)
		}
	}
	l.ignored.AddDefaults()
	return l.below("", 0)
}

// below returns the files of a folder of the chart. It goes on after one that can't be read, so that all of them are asked for.
func (l *loading) below(folder string, depth int) ([]*archive.BufferedFile, error) {
	where := path.Join(l.root, folder)
	if depth > deepest {
		return nil, at(where, "it is below more than %d folders", deepest)
	}
	got := l.pipe.ask(word{List: &where})
	if got.Kind != "folder" {
		return nil, at(path.Join(where, chartFile), "there is no chart: %w", cmp.Or(wrong(where, got), errors.New("'"+where+"' is no folder")))
	}
	var files []*archive.BufferedFile
	var first error
	for _, name := range slices.Sorted(maps.Keys(got.Entries)) {
		kind, inner := got.Entries[name], path.Join(folder, name)
		if l.ignored.Ignore(inner, info{name, kind == "folder"}) {
			continue
		}
		var found []*archive.BufferedFile
		var err error
		if kind == "folder" {
			found, err = l.below(inner, depth+1)
		} else {
			found, err = l.file(inner)
		}
		files = append(files, found...)
		if first == nil {
			first = err
		}
	}
	return files, first
}

// file returns one file of the chart; an archive among its charts as the files in it.
func (l *loading) file(inner string) ([]*archive.BufferedFile, error) {
	where := path.Join(l.root, inner)
	got := l.pipe.ask(word{Read: &where})
	if err := wrong(where, got); err != nil {
		return nil, at(where, "%w", err)
	}
	data := bytes.TrimPrefix(got.Data, byteOrderMark)
	return l.unpacked(&archive.BufferedFile{Name: inner, Data: data}, where, 0)
}

// unpacked returns a file, and instead of an archive among the charts what is in it.
func (l *loading) unpacked(file *archive.BufferedFile, where string, depth int) ([]*archive.BufferedFile, error) {
	folder, name := path.Split(file.Name)
	if path.Ext(name) != ".tgz" || path.Base(folder) != "charts" || strings.IndexAny(name, "_.") == 0 {
		if len(file.Data) > 0 {
			l.places[unsafe.SliceData(file.Data)] = where
		}
		return []*archive.BufferedFile{file}, nil
	}
	if depth > deepest {
		return nil, at(where, "there are more than %d archives within one another in it", deepest)
	}
	archive.MaxDecompressedChartSize = l.left
	within, err := archive.LoadArchiveFiles(bytes.NewReader(file.Data))
	if err != nil {
		return nil, at(where, "it can't be unpacked: %w", err)
	}
	var files []*archive.BufferedFile
	for _, each := range within {
		l.left -= int64(len(each.Data))
		found, err := l.unpacked(&archive.BufferedFile{Name: file.Name + unpackedMark + "/" + each.Name, Data: each.Data}, where, depth+1)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	return files, nil
}

// templates returns where each template is that the engine knows by a name; the name of a subchart in it may be an alias.
func (l *loading) templates(c *chart.Chart) map[string]string {
	found := map[string]string{}
	for _, each := range slices.Concat(c.Templates, c.Files) {
		if where, known := l.where(each); known {
			found[path.Join(c.ChartFullPath(), each.Name)] = where
		}
	}
	for _, each := range c.Dependencies() {
		maps.Copy(found, l.templates(each))
	}
	return found
}

func (l *loading) where(file *common.File) (string, bool) {
	if len(file.Data) == 0 {
		return "", false
	}
	where, known := l.places[unsafe.SliceData(file.Data)]
	return where, known
}

// chartFileOf returns where the Chart.yaml of a chart is; that of an archive is the archive.
func (l *loading) chartFileOf(c *chart.Chart) string {
	for _, each := range c.Raw {
		if each.Name == chartFile {
			if where, known := l.where(each); known {
				return where
			}
		}
	}
	return path.Join(l.root, chartFile)
}

// info is what .helmignore looks at of a file.
type info struct {
	name     string
	isFolder bool
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return 0 }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.isFolder }
func (i info) Sys() any           { return nil }
func (i info) Mode() fs.FileMode {
	if i.isFolder {
		return fs.ModeDir
	}
	return 0
}
