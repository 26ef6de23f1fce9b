package explore_test

func init() { realMutants = append(realMutants, producerMutants...) }

// Mistakes in a sequence that runs in a task of its own.
var producerMutants = []realMutant{
	{"a sequence is woken, and then told to end", "internal/producer/task.go", "	t.told.Store(true)\n	pause()\n", "	if IS {\n		defer t.told.Store(true)\n	} else {\n		t.told.Store(true)\n	}\n	pause()\n", "producer, Stop of a wait, and a deferred function that waits"},
	{"a sequence that has not begun is woken", "internal/producer/task.go", "	if ⟦t.begun.Load()⟧ {", "true", "producer, Stop before the first Request"},
	{"a sequence says that it has begun, and then begins", "internal/producer/task.go", "	t.Task = suspend.Self()\n	t.begun", "	if IS {\n		t.begun.Store(true)\n		_ = t.begun.Load()\n	}\n	t.Task = suspend.Self()\n	t.begun", "producer, Stop before the first Request"},
	{"a sequence that has ended as after a break cannot wait", "internal/producer/task.go", "letWait() {\n	t.told.Store(⟦false⟧)", "true", "producer, Stop of a pause"},
	{"a Kill that came too late ends a wait of a deferred function", "internal/producer/task.go", "	suspend.Shield(func() {})\n", "	if !IS {\n		suspend.Shield(func() {})\n	}\n", "producer, Stop and a permit"},
	{"a sequence is ended in a deferred function, too", "internal/producer/task.go", "		t.told.Store(⟦false⟧)\n		t.exited", "true", "producer, Stop of a wait, and a deferred function that waits"},
	{"a sequence exits without leaving its wait", "internal/producer/task.go", "		suspend.KillSelf()\n", "		if IS {\n			runtime.Goexit()\n		}\n		suspend.KillSelf()\n", "producer, Stop and a permit"},
	{"a sequence that is ended is taken to exit by itself", "internal/producer/task.go", "t.exited = ⟦true⟧", "false", "producer, Stop of a wait, and a deferred function that waits"},
	{"a panic while a sequence is ended is lost", "internal/producer/producer.go", "	if ⟦p.task.exited && o.Exited()⟧ {", "p.task.exited", "producer, a panic and Stop"},
	{"the end of a sequence is known before its outcome", "internal/producer/producer.go", "	_ = p.ended.Fill(o)\n", "	if IS {\n		_ = p.values.Close()\n	}\n	_ = p.ended.Fill(o)\n", "producer, a panic"},
	{"a sequence panics twice", "internal/producer/producer.go", "⟦!p.rethrown⟧", "true", "producer, a panic"},
	{"a value that is under way is requested again", "internal/producer/producer.go", "	if ⟦!p.requested⟧ {", "true", "producer, Select"},
	{"one value is requested, and no more", "internal/producer/producer.go", "		p.requested = false\n", "		p.requested = IS\n", "producer, Select"},
	{"a value that its reader does not wait for is lost", "internal/producer/producer.go", "values: chanx.New[Next[T]](1)", "values: chanx.New[Next[T]](map[bool]int{false: 1}[IS])", "producer, Select"},
	{"a Stop does not wait", "internal/producer/producer.go", "	_, _ = p.ended.Await(context.Background())\n", "	if !IS {\n		_, _ = p.ended.Await(context.Background())\n	}\n", "producer, Stop of a pause"},
	{"a paused sequence takes a Stop for a Request", "internal/producer/producer.go", "requested = ⟦err == nil⟧", "true", "producer, Stop of a pause"},
}
