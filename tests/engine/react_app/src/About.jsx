export default function About() {
  return <p>The shop is run by two geologists and a dog, who answer letters on the first Monday of each month.</p>;
}
