// Before the first paint, so that a chosen theme does not flash. The rest of the page's code is in
// modules, which run later.
try {
  const theme = localStorage.getItem('foretoken.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // The browser keeps nothing for the page: the system's colours it is.
}
