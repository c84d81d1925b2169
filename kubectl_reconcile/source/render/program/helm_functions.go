package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"text/template"
	"time"
	_ "time/tzdata" // the machine's own can't be read here

	"github.com/Masterminds/sprig/v3"
	"k8s.io/apimachinery/pkg/util/json"
)

// tries is how often is drawn again what came out as before.
const tries = 50

// drawing are the functions of templates whose results are another each time.
var drawing = []string{
	"randAlphaNum", "randAlpha", "randNumeric", "randAscii", "randInt", "randBytes", "shuffle", "uuidv4", "genPrivateKey",
	"genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
	"htpasswd", "bcrypt", "encryptAES",
}

// dating are those that take the time of now for what isn't a time.
var dating = map[string]int{"date": 1, "htmlDate": 0, "dateInZone": 1, "date_in_zone": 1, "htmlDateInZone": 0}

// functions are those of templates of which a rendering must know when they are called.
type functions struct {
	// counts is how often each was called whose result is another each time.
	counts map[string]int
	// lookups are the objects that were asked for.
	lookups map[string]bool
	// answers are objects of the cluster as JSON, by how they are asked for.
	answers map[string]string
	// results are what was drawn, and earlier is the rendering whose results this one must not have.
	results map[string][]any
	earlier *functions
	// clock is what time it is.
	clock func() time.Time
}

// newFunctions returns the functions of a rendering; after an earlier one, whatever is drawn differs from what was drawn there.
func newFunctions(answers map[string]string, earlier *functions) *functions {
	f := &functions{map[string]int{}, map[string]bool{}, answers, map[string][]any{}, earlier, time.Now}
	if earlier != nil {
		f.clock = func() time.Time { return time.Date(1970, 2, 3, 4, 5, 6, 789, time.UTC) }
	}
	return f
}

func (f *functions) all() template.FuncMap {
	theirs := sprig.TxtFuncMap()
	own := template.FuncMap{
		"lookup": f.lookup,
		"now":    func() time.Time { f.counts["now"]++; return f.clock() },
		"ago":    func(since any) string { f.counts["ago"]++; return f.ago(since) },
	}
	for _, name := range drawing {
		own[name] = f.counted(name, theirs[name])
	}
	for name, index := range dating {
		own[name] = f.dated(name, theirs[name], index)
	}
	return maps.Clone(own)
}

// lookup answers with the object that the caller gave, or as if there were none. Each call has its own, since templates may
// change it; its whole numbers are integers, as Helm has them.
func (f *functions) lookup(apiVersion, kind, namespace, name string) (map[string]any, error) {
	key := fmt.Sprintf("%s %s %s/%s", apiVersion, kind, namespace, name)
	f.lookups[key] = true
	found := map[string]any{}
	if answer, isThere := f.answers[key]; isThere {
		if err := json.Unmarshal([]byte(answer), &found); err != nil {
			return nil, fmt.Errorf("what %s %s/%s holds is no JSON", kind, namespace, name)
		}
	}
	return found, nil
}

// asked are the objects that were looked up, in their order.
func (f *functions) asked() []string { return slices.Sorted(maps.Keys(f.lookups)) }

// counted returns a function that does the same, and counts.
func (f *functions) counted(name string, original any) any {
	call := reflect.ValueOf(original)
	return reflect.MakeFunc(call.Type(), func(arguments []reflect.Value) []reflect.Value {
		index := f.counts[name]
		f.counts[name]++
		draw := call.Call
		if call.Type().IsVariadic() {
			draw = call.CallSlice
		}
		results := draw(arguments)
		for range tries {
			if !f.wasDrawn(name, index, results[0].Interface()) {
				break
			}
			results = draw(arguments)
		}
		f.results[name] = append(f.results[name], results[0].Interface())
		return results
	}).Interface()
}

func (f *functions) wasDrawn(name string, index int, result any) bool {
	if f.earlier == nil || index >= len(f.earlier.results[name]) {
		return false
	}
	return reflect.DeepEqual(f.earlier.results[name][index], result)
}

// dated returns a function of a date that has the time of now from our clock, which it takes for whatever is no date.
func (f *functions) dated(name string, original any, index int) any {
	call := reflect.ValueOf(original)
	return reflect.MakeFunc(call.Type(), func(arguments []reflect.Value) []reflect.Value {
		switch given := arguments[index].Interface().(type) {
		case time.Time, *time.Time, int64, int, int32:
			_ = given
		default:
			f.counts[name]++
			arguments[index] = reflect.New(call.Type().In(index)).Elem()
			arguments[index].Set(reflect.ValueOf(f.clock()))
		}
		return call.Call(arguments)
	}).Interface()
}

// ago is sprig's, by our clock.
func (f *functions) ago(since any) string {
	var from time.Time
	switch given := since.(type) {
	case time.Time:
		from = given
	case int64:
		from = time.Unix(given, 0)
	case int:
		from = time.Unix(int64(given), 0)
	default:
		from = f.clock()
	}
	return f.clock().Sub(from).Round(time.Second).String()
}
