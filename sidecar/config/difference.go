package config

import "reflect"

// Differences returns the keys whose values differ in a and b, dotted, in the
// order of [Config]. An object is named by its members.
func Differences(a, b Config) []string {
	return differ(reflect.ValueOf(a), reflect.ValueOf(b), "")
}

func differ(a, b reflect.Value, prefix string) []string {
	var keys []string
	for f := range a.Type().Fields() {
		key := prefix + f.Tag.Get("json")
		x, y := a.FieldByIndex(f.Index), b.FieldByIndex(f.Index)
		switch {
		case f.Type.Kind() == reflect.Struct:
			keys = append(keys, differ(x, y, key+".")...)
		case !reflect.DeepEqual(x.Interface(), y.Interface()):
			keys = append(keys, key)
		}
	}
	return keys
}
