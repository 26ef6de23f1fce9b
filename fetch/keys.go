package fetch

import "reflect"

// keys is a property of a type of keys.
type keys uint8

const (
	plain keys = iota // any of them can be in a map
	mixed             // an interface is in them, and what that holds may be a slice, say
)

func keysOf[K comparable]() keys { return keysIn(reflect.TypeFor[K]()) }

func keysIn(t reflect.Type) keys {
	switch t.Kind() {
	case reflect.Interface:
		return mixed
	case reflect.Array:
		return keysIn(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if keysIn(t.Field(i).Type) == mixed {
				return mixed
			}
		}
	}
	return plain
}

// check panics if k can be in no map, before there is a lock to be held.
func check[K comparable](of keys, k K) {
	if of == mixed {
		var none map[K]struct{}
		_ = none[k]
	}
}
