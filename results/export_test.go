package results

// What tests of the package look at from outside.
const SchemaVersion = schemaVersion

var Kinds = kinds

// Metrics returns all of them.
func Metrics() (all []Metric) {
	for _, info := range metrics {
		all = append(all, info.metric)
	}
	return all
}
