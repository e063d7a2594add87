// One framework.
