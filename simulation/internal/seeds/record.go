package seeds

import (
	"encoding/json"
	"time"
)

// A worker sends a Record to its parent as JSON.

type recordJSON struct {
	Run   Run
	Tell  bool
	Story []sceneJSON
	Came  []string
	Count map[string]int
	Named []string
	Bands []bandJSON
}

type sceneJSON struct {
	Scene
	Message *messageJSON
}

type messageJSON struct {
	From    string
	Stream  int // the number of the Stream; 0 means that it is nil
	There   bool
	Arrived time.Duration
	Before  int
}

type bandJSON struct {
	Of, With, What string
	From, To       time.Duration
	At, Until      int
}

// MarshalJSON implements json.Marshaler. Each Stream becomes a number.
func (r *Record) MarshalJSON() ([]byte, error) {
	j := recordJSON{Run: r.Run, Tell: r.Tell, Came: r.came, Count: r.count, Named: r.named}
	streams := map[any]int{nil: 0}
	for _, s := range r.story {
		x := sceneJSON{Scene: s}
		if m := s.Message; m != nil {
			if _, ok := streams[m.Stream]; !ok {
				streams[m.Stream] = len(streams)
			}
			x.Message = &messageJSON{m.From, streams[m.Stream], m.there, m.arrived, m.before}
		}
		j.Story = append(j.Story, x)
	}
	for _, b := range r.bands {
		j.Bands = append(j.Bands, bandJSON{b.of, b.with, b.what, b.from, b.to, b.at, b.until})
	}
	return json.Marshal(j)
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Record) UnmarshalJSON(b []byte) error {
	var j recordJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*r = Record{Run: j.Run, How: How{Tell: j.Tell}, came: j.Came, count: j.Count, named: j.Named}
	for i, x := range j.Story {
		s := x.Scene
		s.order, s.Message = i, nil
		if m := x.Message; m != nil {
			s.Message = &Message{From: m.From, there: m.There, arrived: m.Arrived, before: m.Before}
			if m.Stream > 0 {
				s.Message.Stream = m.Stream
			}
		}
		r.story = append(r.story, s)
	}
	for _, b := range j.Bands {
		r.bands = append(r.bands, &band{b.Of, b.With, b.What, b.From, b.To, b.At, b.Until})
	}
	return nil
}
