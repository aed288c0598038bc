// Before the first paint, so that a remembered theme does not flash the other one.
try {
  const theme = localStorage.getItem('furlong.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // Storage is off: the system's theme it is.
}
