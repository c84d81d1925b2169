package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

// check returns what is wrong with a chart before values come into it, which the engine doesn't look at; and warnings.
func (l *loading) check(c *chart.Chart, abilities *common.Capabilities) ([]string, error) {
	where := l.chartFileOf(c)
	if version := c.Metadata.APIVersion; version != chart.APIVersionV1 && version != chart.APIVersionV2 {
		return nil, at(where, "apiVersion %s of charts isn't known: v1 and v2 are", version)
	}
	if c.Metadata.Type == "library" {
		return nil, at(where, "a library chart has no objects of its own: charts that need it have it in charts/")
	}
	if wanted := c.Metadata.KubeVersion; wanted != "" && !chartutil.IsCompatibleRange(wanted, abilities.KubeVersion.String()) {
		return nil, at(where, "kubeVersion: it asks for Kubernetes %s, and this is %s", wanted, abilities.KubeVersion.Version)
	}
	if err := l.checkDependencies(c); err != nil {
		return nil, err
	}
	return l.oldWithin(c, abilities), nil
}

// oldWithin returns a warning for each chart within c that asks for another Kubernetes, which Helm doesn't look at.
func (l *loading) oldWithin(c *chart.Chart, abilities *common.Capabilities) []string {
	var found []string
	for _, each := range c.Dependencies() {
		if wanted := each.Metadata.KubeVersion; wanted != "" && !chartutil.IsCompatibleRange(wanted, abilities.KubeVersion.String()) {
			found = append(found, fmt.Sprintf(
				"the chart %s in it asks for Kubernetes %s, and this is %s", each.Name(), wanted, abilities.KubeVersion.Version,
			))
		}
		found = append(found, l.oldWithin(each, abilities)...)
	}
	return found
}

// checkDependencies returns an error where a chart that c depends on isn't in charts/, or in another version; also where it is switched off,
// as Helm has it.
func (l *loading) checkDependencies(c *chart.Chart) error {
	for _, wanted := range c.Metadata.Dependencies {
		there := []string{}
		fits := false
		for _, each := range c.Dependencies() {
			if each.Name() == wanted.Name {
				there = append(there, each.Metadata.Version)
				fits = fits || wanted.Version == "" || chartutil.IsCompatibleRange(wanted.Version, each.Metadata.Version)
			}
		}
		if len(there) == 0 {
			return l.missing(c, wanted)
		}
		if !fits {
			return at(l.chartFileOf(c), "dependencies: %s is wanted in version %s, and charts/ has %s",
				wanted.Name, wanted.Version, strings.Join(there, ", "))
		}
	}
	return nil
}

// checkEnabled returns an error where a chart that is switched on lacks one that it depends on, at any depth.
func (l *loading) checkEnabled(c *chart.Chart) error {
	for _, wanted := range c.Metadata.Dependencies {
		isThere := false
		for _, each := range c.Dependencies() {
			isThere = isThere || each.Name() == wanted.Name
		}
		if !isThere {
			return l.missing(c, wanted)
		}
	}
	for _, each := range c.Dependencies() {
		if err := l.checkEnabled(each); err != nil {
			return err
		}
	}
	return nil
}

func (l *loading) missing(c *chart.Chart, wanted *chart.Dependency) error {
	from := ""
	if wanted.Repository != "" {
		from = " from " + wanted.Repository
	}
	return at(l.chartFileOf(c), "dependencies: %s %s%s isn't in charts/", wanted.Name, wanted.Version, from)
}

// --- schemas ---

// alone refuses to load whatever a schema refers to beside itself.
type alone struct{}

func (alone) Load(url string) (any, error) {
	return nil, fmt.Errorf("it refers to %s, and nothing is fetched while rendering", url)
}

const ownURL = "file:///values.schema.json"

// checkSchemas returns what values have that the schema of their chart doesn't allow, and those of the charts in it.
func (l *loading) checkSchemas(c *chart.Chart, values map[string]any) error {
	var found []error
	if c.Schema != nil {
		if err := checkSchema(c.Schema, values); err != nil {
			found = append(found, fmt.Errorf("values of %s: %w", c.ChartPath(), err))
		}
	}
	for _, each := range c.Dependencies() {
		switch own := values[each.Name()].(type) {
		case nil:
		case map[string]any:
			if err := l.checkSchemas(each, own); err != nil {
				found = append(found, err)
			}
		default:
			found = append(found, fmt.Errorf("values of %s: they are no map", each.ChartPath()))
		}
	}
	return errors.Join(found...)
}

func checkSchema(text []byte, values map[string]any) (err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			err = fmt.Errorf("the schema can't be used: %v", recovered)
		}
	}()
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("the schema can't be read: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(alone{})
	if err := compiler.AddResource(ownURL, schema); err != nil {
		return fmt.Errorf("the schema can't be used: %w", err)
	}
	compiled, err := compiler.Compile(ownURL)
	if err != nil {
		return fmt.Errorf("the schema can't be used: %w", err)
	}
	if err := compiled.Validate(values); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "jsonschema validation failed with '"+ownURL+"#'\n"))
	}
	return nil
}
