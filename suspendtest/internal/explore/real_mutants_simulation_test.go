package explore_test

func init() { realMutants = append(realMutants, simulationMutants...) }

var simulationMutants = []realMutant{
	{"a World falls asleep although a call has come", "simulation/sleep.go", "w.asleep = ⟦!w.called.Load()⟧", "true", "simulation, a call and the alarm;simulation, two calls"},
	{"a call does not wake the World", "simulation/calls.go", "	w.called.Store(true)\n	if ⟦w.asleep⟧ {", "false", "simulation, a call and the alarm;simulation, two calls"},
	{"a World ends although a call has come", "simulation/sleep.go", "w.closed = ⟦len(w.in) == 0⟧\n	return", "true", "simulation, a call and the alarm;simulation, two calls"},
	{"the alarm wakes nobody", "simulation/sleep.go", "func (w *World) rouseSelf() {\n	w.mu.Lock()\n	defer w.mu.Unlock()\n	if ⟦w.asleep⟧ {", "false", "simulation, a call and the alarm;simulation, two calls"},
}
