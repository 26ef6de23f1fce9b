package natsactor

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// JSON returns a Codec that encodes a message as {"type": …, "message": …}. Each type of message must have one example among the
// arguments. The name of a type is its Go name without the package. Replies are plain JSON.
func JSON[M any](examples ...M) Codec[M] {
	c := &jsonCodec[M]{byName: map[string]reflect.Type{}, names: map[reflect.Type]string{}}
	for _, m := range examples {
		t := reflect.TypeOf(m)
		if t == nil {
			panic("natsactor: JSON with a nil example")
		}
		name := t.Name()
		if t.Kind() == reflect.Pointer {
			name = t.Elem().Name()
		}
		if _, twice := c.byName[name]; twice || name == "" {
			panic("natsactor: JSON with two examples of the same name, or one without a name")
		}
		c.byName[name], c.names[t] = t, name
	}
	return c
}

type jsonCodec[M any] struct {
	byName map[string]reflect.Type
	names  map[reflect.Type]string
}

type envelope struct {
	Type    string          `json:"type"`
	Message json.RawMessage `json:"message"`
}

func (c *jsonCodec[M]) Encode(m M) ([]byte, error) {
	name, ok := c.names[reflect.TypeOf(m)]
	if !ok {
		return nil, fmt.Errorf("natsactor: unknown type %T", m)
	}
	data, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return json.Marshal(envelope{name, data})
}

func (c *jsonCodec[M]) Decode(data []byte) (m M, err error) {
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return m, err
	}
	t, ok := c.byName[e.Type]
	if !ok {
		return m, fmt.Errorf("natsactor: unknown type %q", e.Type)
	}
	v := reflect.New(t)
	if err := json.Unmarshal(e.Message, v.Interface()); err != nil {
		return m, err
	}
	m, ok = v.Elem().Interface().(M)
	if !ok || t.Kind() == reflect.Pointer && v.Elem().IsNil() {
		return m, fmt.Errorf("natsactor: a %q without a value is not a message", e.Type)
	}
	return m, nil
}

func (c *jsonCodec[M]) EncodeReply(v any) ([]byte, error)     { return json.Marshal(v) }
func (c *jsonCodec[M]) DecodeReply(data []byte, to any) error { return json.Unmarshal(data, to) }
